"""pydeno inside other people's frameworks. Each module needs its framework; `import pydeno` imports none of them."""
