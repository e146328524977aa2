"""Extracts the part of a page in which a lost element is likely, as HTML for the server's ranking:
without scripts, styles and the contents of fields. Outside controls only usual words remain,
because any other text may be personal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cardsync_agent.browser.masks import CONTROLS, masked_elements
from cardsync_agent.repairs import MOST_SNIPPET_BYTES
from cardsync_agent.workflow.pack import Element, Pack

if TYPE_CHECKING:
    from playwright.sync_api import Page

# The usual words of sellers' pages. A text with only these words and those of the lost element does
# not name a person.
_USUAL = """
a about accept accepted account actions add added again all and any apply are as at available back
been before buyers by cancel canceled card cards changed check choose chosen clear code complete
completed confirm continue copy csv current customers dashboard date days delete deleted details
discard discarded does done download downloaded each edit email error every expired export exported
failed feedback file files filter filters find finished for form from full game games get go has
help here history home how if import imported imports in inventory is it last latest list live load
log look lookup manage menu message month months more my name new next no none not nothing now
number of off on one only open options or order orders other our out pages paid password payment
payments payouts pending please previous price prices pricing print processed product products
publish published pull quantity range rating ratings read ready received refund refunded refunds
rejected remove removed replaced report reports required reset results review rows sales save saved
search see select selected seller send sent set sets settings sheet shipment shipments shipped
shipping show sign since staged start state status stock store submit submitted summary table text
than that the them there these this those to today total type until update updated upload uploaded
uploads view was week were when which with without year years yesterday yet you your
"""
# The script reads the page and changes nothing in it.
_TAKE = r"""
([masked, words, usual, controls, most]) => {
  const left = new Set(['script', 'style', 'noscript', 'template', 'link', 'meta', 'iframe',
    'object', 'embed', 'svg', 'canvas', 'video', 'audio', 'head']);
  const empty = new Set(['input', 'img', 'br', 'hr', 'wbr', 'area', 'col', 'source', 'track']);
  const hide = new Set(masked);
  // An element around personal data may name the person in an attribute.
  const near = new Set();
  for (const el of masked) {
    for (let at = el; at && !near.has(at); at = at.parentElement) near.add(at);
  }
  const common = new Set([...words, ...usual.split(/\s+/)]);
  const isUsual = (text) => {
    // One short number or amount is not personal; several numbers may be a telephone number.
    const number = /(^|[\s/])[$€£]?\d{1,3}([.,]\d{3})?([.,]\d\d)?(?![^\s/%])/;
    const said = text.toLowerCase().replace(number, '$1');
    return (said.match(/[\p{L}\p{N}]+/gu) || []).every((word) => common.has(word));
  };
  const mayShow = (el, text) => el.closest(controls) !== null || isUsual(text);
  const form = new Set(['class', 'id', 'type', 'role', 'name', 'for', 'data-testid', 'method',
    'disabled', 'aria-haspopup', 'aria-expanded', 'aria-controls']);
  // A name in a masked element is removed from the whole snippet.
  const known = new Set();
  for (const el of masked) {
    for (const text of [el.innerText, el.value, ...(el.innerText || '').split('\n')]) {
      const words = String(text || '').replace(/\s+/g, ' ').trim();
      if (words.length < 4) continue;
      known.add(words).add(encodeURIComponent(words)).add(words.replace(/ /g, '+'));
    }
  }
  const names = [...known].slice(0, 1000).sort((a, b) => b.length - a.length)
    .map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const person = names.length ? new RegExp(names.join('|'), 'g') : /$^/;
  const mail = /[^\s@<>"',;:()=?&/]+(?:@|%40)[^\s@<>"',;:()=?&/]+/g;
  const clean = (text, most) => text.replace(person, '…').replace(mail, '…').slice(0, most)
    .replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
  const pressed = new Set(['submit', 'button', 'reset', 'image']);
  const opening = (el) => {
    let out = '<' + el.localName;
    for (const {name, value} of el.attributes) {
      if (name === 'style' || name === 'srcset' || name.startsWith('on') || name === 'hidden'
          || (name === 'src' && value.startsWith('data:'))
          || (name === 'value' && !(el.localName === 'input' && pressed.has(el.type)))
          || (!form.has(name) && (near.has(el) || !mayShow(el, value)))) continue;
      out += ` ${name}="${clean(value, 300)}"`;
    }
    const quiet = getComputedStyle(el);
    // The items of a closed menu are not marked as hidden, because a click opens the menu.
    const before = el.previousElementSibling;
    const menu = el.id && document.querySelector(`[aria-controls="${CSS.escape(el.id)}"]`)
      || before && before.matches('button[aria-haspopup], button[aria-expanded=false]');
    if (!menu && (quiet.display === 'none' || quiet.visibility === 'hidden')) out += ' hidden';
    return out + '>';
  };
  const made = new Map();
  const size = (text) => new TextEncoder().encode(text).length;
  const markup = (el) => {
    let out = opening(el);
    if (!empty.has(el.localName)) {
      if (hide.has(el)) out += '…';
      else if (el.localName !== 'textarea' && !el.isContentEditable) {
        for (const node of el.childNodes) {
          if (node.nodeType === 3) {
            out += mayShow(el, node.data) ? clean(node.data.replace(/\s+/g, ' ')) : '…';
          }
          if (node.nodeType === 1 && !left.has(node.localName)) out += markup(node);
        }
      }
      out += `</${el.localName}>`;
    }
    made.set(el, out);
    return out;
  };
  const body = document.body;
  if (!body) return '';
  const all = markup(body);
  if (size(all) <= most) return all;
  // The snippet's center is the element with the most words in the shortest text.
  let best = null, most_said = 0;
  for (const [el, out] of made) {
    if (out.length > 2000) continue;
    const text = out.toLowerCase();
    const said = words.filter((word) => text.includes(word)).length - out.length / 10000;
    if (said > most_said) { best = el; most_said = said; }
  }
  if (!best) best = document.querySelector('main') || body;
  while (size(made.get(best)) > most) {
    const inner = [...best.children].filter((el) => made.has(el));
    if (!inner.length) return '';
    best = inner.reduce((a, b) => made.get(a).length >= made.get(b).length ? a : b);
  }
  while (best !== body && made.has(best.parentElement)
      && size(made.get(best.parentElement)) <= most) best = best.parentElement;
  let out = made.get(best);
  // Add neighbors while they fit.
  for (let next = best.nextElementSibling, before = best.previousElementSibling; next || before;) {
    const more = next ? made.get(next) || '' : made.get(before) || '';
    if (size(out) + size(more) > most) break;
    if (next) { out += more; next = next.nextElementSibling; }
    else { out = more + out; before = before.previousElementSibling; }
  }
  return out;
}
"""


def snippet(
    page: Page, pack: Pack, name: str, element: Element, most_bytes: int = MOST_SNIPPET_BYTES
) -> str:
    """Return at most `most_bytes` of HTML."""
    masked, words = masked_elements(page, pack), words_of(name, element)
    return str(page.evaluate(_TAKE, [masked, words, _USUAL, CONTROLS, most_bytes - 100]))


def words_of(name: str, element: Element) -> list[str]:
    """Return the words by which the element may still be recognized."""
    looks = element.looks
    texts: Sequence[str | None] = (
        name, looks.text, looks.label, looks.id, looks.name, looks.title, looks.around,
        *(x.name or x.text or x.label or x.test_id for x in element.locators),
    )  # fmt: skip
    found = re.findall(r"[^\W_]{3,}", " ".join(text for text in texts if text).lower())
    return list(dict.fromkeys(found))[:40]
