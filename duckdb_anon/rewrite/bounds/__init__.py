"""Low and high of an estimate: hard bounds, and intervals of the randomness a method publishes."""
