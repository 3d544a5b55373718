"""What a sample's classes tell of the population it was drawn from: uniqueness and special uniques."""
