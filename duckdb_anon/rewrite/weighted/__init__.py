"""One weighted relation behind every query on a release."""
