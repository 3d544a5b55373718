"""What an attacker gains: classes and their guarantees, attacks on finished releases."""
