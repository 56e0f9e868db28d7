#include <tensorpool/device/cuda_backend.hpp>

#include <vector>

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
/// The driver of a machine with a card, which may be of any kind. Without a card there are no
/// cases.
auto driver() {
    std::vector<BackendFactory> factories;
    static const bool has_card = make_with_driver().backend != nullptr;
    if (has_card) {
        factories.push_back({"driver", make_with_driver, /*knows_handles=*/false,
                             /*is_of_machine=*/true});
    }
    return ::testing::ValuesIn(factories);
}
INSTANTIATE_TEST_SUITE_P(Cuda, BackendContract, driver(), name_of);
INSTANTIATE_TEST_SUITE_P(Cuda, BackendWhereFunctionsMayBlock, driver(), name_of);
INSTANTIATE_TEST_SUITE_P(Cuda, BackendWithVirtualMemory, driver(), name_of);
INSTANTIATE_TEST_SUITE_P(Cuda, BackendWithoutVirtualMemory, driver(), name_of);
INSTANTIATE_TEST_SUITE_P(Cuda, BackendWithExportableMemory, driver(), name_of);
INSTANTIATE_TEST_SUITE_P(Cuda, BackendWithoutExportableMemory, driver(), name_of);
INSTANTIATE_TEST_SUITE_P(Cuda, BackendWithCapture, driver(), name_of);
INSTANTIATE_TEST_SUITE_P(Cuda, BackendWithoutCapture, driver(), name_of);
INSTANTIATE_TEST_SUITE_P(Cuda, BackendWithStreamOrder, driver(), name_of);
INSTANTIATE_TEST_SUITE_P(Cuda, BackendWithManagedAdvice, driver(), name_of);

#ifdef TENSORPOOL_FAKE_CUDA

MadeBackend make_with_fake() {
    return made_of(std::make_unique<CudaBackend>(TENSORPOOL_FAKE_CUDA));
}
MadeBackend make_with_old_fake() {
    return made_of(std::make_unique<CudaBackend>(TENSORPOOL_FAKE_CUDA_OLD));
}
const BackendFactory fake = {"fake", make_with_fake};
const BackendFactory old_fake = {"old_fake", make_with_old_fake};
const auto both = ::testing::Values(fake, old_fake);
const auto new_only = ::testing::Values(fake);
const auto old_only = ::testing::Values(old_fake);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendContract, both, name_of);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendWhereFunctionsMayBlock, both, name_of);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendThatKnowsHandles, both, name_of);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendWithVirtualMemory, new_only, name_of);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendWithExportableMemory, new_only, name_of);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendWithCapture, new_only, name_of);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendWithCaptureThatKnowsHandles, new_only, name_of);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendWithStreamOrder, new_only, name_of);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendWithManagedAdvice, new_only, name_of);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendWithoutVirtualMemory, old_only, name_of);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendWithoutExportableMemory, old_only, name_of);
INSTANTIATE_TEST_SUITE_P(FakeCuda, BackendWithoutCapture, old_only, name_of);

#else

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendWithExportableMemory);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendWithoutVirtualMemory);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendWithoutCapture);

#endif

}  // namespace
}  // namespace tensorpool::testing
