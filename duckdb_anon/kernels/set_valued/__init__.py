"""Set-valued data: the sensitive values of each person, and ways to publish them along a hierarchy."""
