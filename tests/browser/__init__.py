"""Tests in a real browser; in a package, so that the browser ends with its last test."""
