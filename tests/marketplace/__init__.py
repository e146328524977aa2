"""A simulated marketplace: a small website with the seller's pages of a marketplace with pricing
export, in three designs, with faults on request. README.md says how to start and steer it.
"""
