"""What an analyst loses: loss of information, distances of distributions, what a learner achieves."""
