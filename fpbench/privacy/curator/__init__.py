"""Somebody who holds groups and answers noisy questions, here or on another machine."""
