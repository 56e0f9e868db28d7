// Does not compile: the header must come first.

#include <armadillo>

#include <tensorpool/armadillo.hpp>
