// Does not compile, because the header must be included first.

#include <xtensor/xarray.hpp>

#include <tensorpool/xtensor.hpp>
