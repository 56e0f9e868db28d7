// Computes with Eigen in blocks of the pool: a PooledMatrix owns a block and provides it as an
// Eigen::Map.

#include <cstdio>

#include <tensorpool/eigen.hpp>

int main() {
    using Matrix = tensorpool::PooledMatrix<float>;
    Matrix weights(256, 128);
    Matrix inputs(128, 32);
    Matrix outputs(256, 32);
    weights.map().setConstant(0.5F);
    inputs.map().setOnes();
    outputs.map().noalias() = weights.map() * inputs.map();

    const bool pooled = tensorpool::get_global_memory_pool().owns(outputs.data());
    std::printf("each output is %.0f, %s\n", static_cast<double>(outputs.map()(0, 0)),
                pooled ? "from the pool" : "not from the pool");
    return pooled ? 0 : 1;
}
