"""The workbench: a local page on which a table is cleaned, labelled, released and verified without SQL."""
