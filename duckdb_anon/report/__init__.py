"""One page about an original and its releases: what is promised, what an attacker gains, what an analyst loses."""
