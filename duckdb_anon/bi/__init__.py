"""The package inside other people's tools: a SQLAlchemy dialect and a Harlequin adapter, named by entry points."""
