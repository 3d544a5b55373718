"""What every table passes before it leaves the data holder: one set of checks for all doors."""
