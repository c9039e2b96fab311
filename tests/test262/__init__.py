"""The conformance tests of ECMAScript, in a confined worker and in the engine without pydeno."""
