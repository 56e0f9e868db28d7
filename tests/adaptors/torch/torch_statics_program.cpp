// Static tensors, made before main and in it, are freed in the pool after everything else.

#include <tensorpool/torch.hpp>

#include <ATen/ATen.h>

namespace {

struct Static {
    Static() { tensorpool::enable_torch(), tensor = at::ones({100'000}); }
    ~Static() { tensor.fill_(2).resize_({200'000}); }

    at::Tensor tensor;
};
Static first;
at::Tensor second = at::ones({10});
thread_local at::Tensor third;

}  // namespace

int main() {
    third = at::ones({1000});
    static const at::Tensor fourth = third + second[0];
    return tensorpool::get_global_memory_pool().owns(first.tensor.data_ptr()) ? 0 : 1;
}
