"""What is kept of a release: register, digest, seal, the text of its call."""
