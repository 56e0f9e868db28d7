// Makes every matrix of Armadillo come from the pool, by including one header instead of
// Armadillo's.

#include <tensorpool/armadillo.hpp>

#include <cstdio>

int main() {
    const arma::mat a = arma::eye(200, 200) * 4;
    const arma::mat b(200, 200, arma::fill::ones);
    const arma::mat x = arma::solve(a, b);

    const bool pooled = tensorpool::get_global_memory_pool().owns(x.memptr());
    std::printf("x(0, 0) is %.2f, %s\n", x(0, 0), pooled ? "from the pool" : "not from the pool");
    return pooled ? 0 : 1;
}
