"""What every other room speaks of: coded tables, cells, entries of the registry, errors, progress."""
