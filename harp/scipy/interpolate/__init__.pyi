# Written by tests/types/stubs.py.
from harp.scipy.interpolate.grids import RegularGridInterpolator as RegularGridInterpolator
from harp.scipy.interpolate.piecewise import PPoly as PPoly
from harp.scipy.interpolate.splines import (
    Akima1DInterpolator as Akima1DInterpolator,
    CubicHermiteSpline as CubicHermiteSpline,
    CubicSpline as CubicSpline,
    PchipInterpolator as PchipInterpolator,
)
