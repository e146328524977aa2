export default {
  extends: "stylelint-config-standard",
  ignoreFiles: ["../src/cardsync/dashboard/static/vendor/**"],
  rules: {
    // Rules follow each other without empty lines, as declarations do.
    "at-rule-empty-line-before": null,
    "comment-empty-line-before": null,
    "custom-property-empty-line-before": null,
    "declaration-empty-line-before": null,
    "rule-empty-line-before": null,
    // A component's parts, states and sizes stand together; layers say which rule wins.
    "no-descending-specificity": null,
    // Each color has a name, in tokens.css.
    "color-no-hex": true,
    "declaration-block-no-redundant-longhand-properties": [true, { ignoreShorthands: ["/^grid/"] }],
    "import-notation": "string",
    // Safari on phones knows no other name.
    "property-no-vendor-prefix": [true, { ignoreProperties: ["-webkit-text-size-adjust"] }],
    "value-keyword-case": ["lower", { ignoreKeywords: ["Roboto", "Arial"] }],
    "length-zero-no-unit": [true, { ignore: ["custom-properties"] }],
  },
  overrides: [{ files: ["**/tokens.css"], rules: { "color-no-hex": null } }],
};
