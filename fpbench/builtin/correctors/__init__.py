"""Built-in correctors."""
