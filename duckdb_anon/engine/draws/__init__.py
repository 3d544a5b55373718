"""Tables drawn from a release, and the tables a query reads."""
