"""What a process needs in its environment so that what harp compiles there runs under gcc's sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

GCC = shutil.which("gcc") or ""
# The library that a process loads first for each sanitizer; what the second one links is found by itself.
LIBRARIES = {"address,undefined": "libasan.so", "thread": "libtsan.so"}


def environment(sanitizer: str) -> dict[str, str] | None:
    """None where gcc, or its library, is not there."""
    if not GCC:
        return None
    question = [GCC, f"-print-file-name={LIBRARIES[sanitizer]}"]
    library = Path(subprocess.run(question, capture_output=True, text=True, check=True).stdout.strip())
    if not library.is_absolute():
        return None
    return {
        "HARP_CC": f"{GCC} -fsanitize={sanitizer} -fno-sanitize-recover=all",
        "LD_PRELOAD": str(library),
        "ASAN_OPTIONS": "detect_leaks=0",
        "TSAN_OPTIONS": "halt_on_error=1",
        "OPENBLAS_NUM_THREADS": "1",  # NumPy's own threads are not what is looked at
    }
