// Does not compile: the header must come first.

#include <xtensor/xarray.hpp>

#include <tensorpool/xtensor.hpp>
