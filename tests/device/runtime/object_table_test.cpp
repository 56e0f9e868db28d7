#include "device/runtime/runtime_core.hpp"

#include <gtest/gtest.h>

#include <tensorpool/device/simulated_backend.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

class RuntimeObjects : public testing::Test {
protected:
    std::shared_ptr<SimulatedBackend> backend_ =
        std::make_shared<SimulatedBackend>(lazy_devices(2));
    std::optional<Runtime> runtime_{std::in_place, backend_, Device{DeviceType::simulated, 1}};
};

struct KnowsItsRuntime {
    explicit KnowsItsRuntime(Runtime& from) : runtime(&from) {}
    Runtime* runtime;
};
struct Plain {
    int number = 7;
};

TEST_F(RuntimeObjects, AreMadeFromTheRuntimeAtTheFirstCall) {
    KnowsItsRuntime& made = runtime_->object<KnowsItsRuntime>();
    EXPECT_EQ(made.runtime, &*runtime_);
    EXPECT_EQ(&runtime_->object<KnowsItsRuntime>(), &made);
    EXPECT_EQ(runtime_->object<Plain>().number, 7);
}

TEST_F(RuntimeObjects, AreMadeByAGivenFactory) {
    int calls = 0;
    const auto factory = [&](Runtime& from) {
        ++calls;
        return std::make_unique<Plain>(Plain{from.device().index + 40});
    };
    EXPECT_EQ(runtime_->object<Plain>(factory).number, 41);
    EXPECT_EQ(runtime_->object<Plain>(factory).number, 41);
    EXPECT_EQ(calls, 1);
}

std::vector<std::string>& ended() {
    static std::vector<std::string> names;
    return names;
}
struct First {
    ~First() { ended().push_back("first"); }
};
struct Second {
    explicit Second(Runtime& runtime) : first(runtime.object<First>()) {}
    ~Second() { ended().push_back("second"); }
    First& first;
};
struct Third {
    explicit Third(Runtime& runtime) : second(runtime.object<Second>()) {}
    ~Third() { ended().push_back("third"); }
    Second& second;
};

TEST_F(RuntimeObjects, MayRequestOthersAndAreDestroyedBeforeThem) {
    ended().clear();
    Third& third = runtime_->object<Third>();
    EXPECT_EQ(&third.second.first, &runtime_->object<First>());
    runtime_.reset();
    EXPECT_EQ(ended(), (std::vector<std::string>{"third", "second", "first"}));
}

struct RequestsAtItsEnd {
    explicit RequestsAtItsEnd(Runtime& its_runtime)
        : runtime(its_runtime), first(runtime.object<First>()) {}
    ~RequestsAtItsEnd() {
        ended().push_back(&runtime.object<First>() == &first ? "same" : "another");
    }
    Runtime& runtime;
    First& first;
};

TEST_F(RuntimeObjects, MayRequestOthersDuringDestruction) {
    ended().clear();
    (void)runtime_->object<RequestsAtItsEnd>();
    runtime_.reset();
    EXPECT_EQ(ended(), (std::vector<std::string>{"same", "first"}));
}

TEST_F(RuntimeObjects, NullptrFromAFactoryIsRejected) {
    EXPECT_THROW(runtime_->object<Plain>([](Runtime&) { return std::unique_ptr<Plain>(); }),
                 std::logic_error);
    EXPECT_EQ(runtime_->object<Plain>().number, 7);
}

struct ThrowsOnce {
    explicit ThrowsOnce(Runtime& runtime) {
        (void)runtime.object<First>();
        if (attempts++ == 0) throw std::runtime_error("not yet");
    }
    static inline int attempts = 0;
};

TEST_F(RuntimeObjects, AreMadeAgainAfterAnException) {
    ThrowsOnce::attempts = 0;
    EXPECT_THROW(runtime_->object<ThrowsOnce>(), std::runtime_error);
    EXPECT_NO_THROW(runtime_->object<ThrowsOnce>());
    EXPECT_EQ(ThrowsOnce::attempts, 2);
}

struct RequestsItself {
    explicit RequestsItself(Runtime& runtime) { (void)runtime.object<RequestsItself>(); }
};

TEST_F(RuntimeObjects, RequestingThemselvesIsRejected) {
    try {
        (void)runtime_->object<RequestsItself>();
        ADD_FAILURE();
    } catch (const std::logic_error& error) {
        EXPECT_NE(std::string(error.what()).find("RequestsItself"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("requests itself"), std::string::npos);
    }
    // The failure does not affect other objects.
    EXPECT_EQ(runtime_->object<Plain>().number, 7);
}

struct Counted {
    Counted() { ++made; }
    static inline std::atomic<int> made{0};
};
struct AlsoCounted {
    explicit AlsoCounted(Runtime& runtime) : counted(runtime.object<Counted>()) {}
    Counted& counted;
};

TEST_F(RuntimeObjects, AreMadeOnceByConcurrentThreads) {
    Counted::made = 0;
    std::vector<std::thread> threads;
    for (int number = 0; number < 8; ++number) {
        threads.emplace_back([&, number] {
            if (number % 2 == 0) {
                (void)runtime_->object<AlsoCounted>();
            } else {
                (void)runtime_->object<Counted>();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(Counted::made, 1);
}

struct OwnsMemory {
    explicit OwnsMemory(Runtime& runtime) : workspace(runtime, 1000) {}
    DeviceAllocation workspace;
};

TEST_F(RuntimeObjects, MayOwnMemoryOfTheRuntimeThatOwnsThem) {
    const std::weak_ptr<SimulatedBackend> backend = backend_;
    (void)runtime_->object<OwnsMemory>();
    backend_.reset();
    EXPECT_FALSE(backend.expired());
    runtime_.reset();
    EXPECT_TRUE(backend.expired());
}

}  // namespace
}  // namespace tensorpool
