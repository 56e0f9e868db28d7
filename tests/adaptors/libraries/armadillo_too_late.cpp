// Does not compile, because the header must be included first.

#include <armadillo>

#include <tensorpool/armadillo.hpp>
