"""placeholder"""
from typing import Any
class Report: pass
def make_report(*a: Any) -> Any: return a
