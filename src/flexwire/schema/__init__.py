"""Message specs: as they are written, bundled, and resolved for one version."""
