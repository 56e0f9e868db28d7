#include <tensorpool/device/cuda_backend.hpp>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {
namespace {

MadeBackend made_of(std::unique_ptr<CudaBackend> backend) {
    if (backend->device_count() != 0) return {std::move(backend), ""};
    return {nullptr, backend->last_error()};
}

MadeBackend make_with_driver() {
    return made_of(std::make_unique<CudaBackend>());
}
INSTANTIATE_TEST_SUITE_P(Cuda, BackendContract,
                         ::testing::Values(BackendFactory{"driver", make_with_driver, true, false}),
                         name_of);

#ifdef TENSORPOOL_FAKE_CUDA

MadeBackend make_with_fake() {
    return made_of(std::make_unique<CudaBackend>(TENSORPOOL_FAKE_CUDA));
}
MadeBackend make_with_old_fake() {
    return made_of(std::make_unique<CudaBackend>(TENSORPOOL_FAKE_CUDA_OLD));
}
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendContract,
                         ::testing::Values(BackendFactory{"fake", make_with_fake, true},
                                           BackendFactory{"old_fake", make_with_old_fake, true}),
                         name_of);

#endif

}  // namespace
}  // namespace tensorpool::testing
