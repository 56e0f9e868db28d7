// A program that does each work of support/default_costs.hpp, with a feature of that list or
// without, and prints the instructions and the system calls of each: FEATURE on|off.

#include "support/default_costs.hpp"

#include <cstdio>
#include <string_view>

#include <pthread.h>
#include <sys/wait.h>

#if defined(__x86_64__)

#include "support/counted_call_linux.hpp"

namespace {

using namespace tensorpool::testing;

/// Where a thread's end and a fork are counted: between handlers that were set before the library
/// set its own, and others that were set after.
class CountingMeter : public Meter {
public:
    void begin() override { begin_counting(); }
    void end() override {
        const CountedCall part = end_counting();
        instructions_ += part.instructions;
        system_calls_ += part.system_calls;
    }
    void run_thread(const std::function<void()>& body) override {
        std::thread([&] {
            pthread_setspecific(first_key, this);
            pthread_setspecific(last_key, this);
            begin();
            body();
            end();
        }).join();
    }
    void fork_once() override {
        forking = this;
        const pid_t child = fork();
        if (child == 0) _exit(0);
        forking = nullptr;
        waitpid(child, nullptr, 0);
    }

    unsigned long instructions() const { return instructions_; }
    unsigned long system_calls() const { return system_calls_; }

    static void set_first_handlers() {
        pthread_key_create(&first_key, [](void* meter) { meter_at(meter).begin(); });
        pthread_atfork(end_part, begin_part, nullptr);
    }
    static void set_last_handlers() {
        // It keeps itself until the last round of handlers.
        pthread_key_create(&last_key, [](void* meter) {
            static thread_local int round = 0;
            if (++round == PTHREAD_DESTRUCTOR_ITERATIONS) return meter_at(meter).end();
            pthread_setspecific(last_key, meter);
        });
        pthread_atfork(begin_part, end_part, nullptr);
    }

private:
    static CountingMeter& meter_at(void* meter) { return *static_cast<CountingMeter*>(meter); }
    static void begin_part() {
        if (forking != nullptr) forking->begin();
    }
    static void end_part() {
        if (forking != nullptr) forking->end();
    }

    static inline pthread_key_t first_key = 0;
    static inline pthread_key_t last_key = 0;
    static inline CountingMeter* forking = nullptr;

    unsigned long instructions_ = 0;
    unsigned long system_calls_ = 0;
};

// Before the library is initialized.
[[gnu::constructor(101)]] void set_first_handlers() {
    CountingMeter::set_first_handlers();
}

struct Unmeasured : Meter {
    void begin() override {}
    void end() override {}
    void run_thread(const std::function<void()>& body) override { std::thread(body).join(); }
    void fork_once() override {}
};

constexpr Sizes sizes{.rounds = 1,
                      .pairs = 64,
                      .passes = 1,
                      .blocks = 200,
                      .slots = 128,
                      .warm_blocks = 400,
                      .threads = 16,
                      .pairs_of_thread = 128};

}  // namespace

int main(int count, char** arguments) {
    const std::vector<Feature> features = all_features();
    const Feature* const feature = count != 3 ? nullptr : find_named(features, arguments[1]);
    if (feature == nullptr) return 2;
    bool begins = std::string_view(arguments[2]) == "on";
    for (const Work& work : all_works) {
        Unmeasured warm;
        do_work(*feature, std::exchange(begins, false), work, warm, sizes);
        // The handlers of the library are set now.
        if (&work == all_works) CountingMeter::set_last_handlers();
        // The cheaper of two: from time to time a call also looks at the time or the memory that is
        // available.
        unsigned long instructions = ~0UL;
        unsigned long system_calls = ~0UL;
        for (int i = 0; i != 2; ++i) {
            CountingMeter meter;
            do_work(*feature, false, work, meter, sizes);
            instructions = std::min(instructions, meter.instructions());
            system_calls = std::min(system_calls, meter.system_calls());
        }
        std::printf("%lu %lu %s\n", instructions, system_calls, work.name);
    }
}

#else
int main() {}
#endif
