"""One adapter for each package that pydeno is measured beside, all of them driven alike by `work.py`.

An adapter runs in the environment of its own package: `python -m peers.jsrun full calls`, in `benches/`, prints what it
measured as one JSON object. `contenders.py` lists them.
"""
