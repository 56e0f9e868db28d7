// Makes every array of xtensor come from the pool, by including one header before xtensor's.

#include <tensorpool/xtensor.hpp>

#include <cstdio>

#include <xtensor/xarray.hpp>
#include <xtensor/xmath.hpp>

int main() {
    const xt::xarray<float> image = xt::ones<float>({480, 640});
    const xt::xarray<float> brighter = 2.0F * image + 1.0F;

    const bool pooled = tensorpool::get_global_memory_pool().owns(brighter.data());
    std::printf("the sum is %.0f, %s\n", static_cast<double>(xt::sum(brighter)()),
                pooled ? "from the pool" : "not from the pool");
    return pooled ? 0 : 1;
}
