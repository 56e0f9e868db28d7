// A program that does each work of support/default_costs.hpp, with a feature of that list or
// without, and prints the instructions and the system calls of each: FEATURE on|off.

#include "support/default_costs.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <pthread.h>
#include <sys/wait.h>

#if defined(__x86_64__)

#include "support/counted_call_linux.hpp"

namespace {

using namespace tensorpool::testing;

/// Where a thread's end and a fork are counted: between handlers that were set before the library
/// set its own, and others that were set after. Of a fork, those of the parent and of the child
/// count.
class CountingMeter : public Meter {
public:
    void begin() override { begin_counting(); }
    void end() override {
        const CountedCall part = end_counting();
        instructions_ += part.instructions;
        // A reservation is aligned by unmapping one end or both, as its address happens to be.
        system_calls_ += part.system_calls - part.unmaps;
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
        int ends[2];
        if (pipe(ends) != 0) std::abort();
        forking = this;
        const pid_t child = fork();
        unsigned long of_child[] = {instructions_, system_calls_};
        if (child == 0) _exit(write(ends[1], of_child, sizeof of_child) == sizeof of_child ? 0 : 1);
        forking = nullptr;
        close(ends[1]);
        if (read(ends[0], of_child, sizeof of_child) != sizeof of_child) std::abort();
        close(ends[0]);
        instructions_ += of_child[0];
        system_calls_ += of_child[1];
        waitpid(child, nullptr, 0);
    }

    unsigned long instructions() const { return instructions_; }
    unsigned long system_calls() const { return system_calls_; }

    static void set_first_handlers() {
        pthread_key_create(&first_key, [](void* meter) { meter_at(meter).begin(); });
        pthread_atfork(end_part, begin_part, begin_child);
    }
    static void set_last_handlers() {
        // It keeps itself until the last round of handlers.
        pthread_key_create(&last_key, [](void* meter) {
            static thread_local int round = 0;
            if (++round == PTHREAD_DESTRUCTOR_ITERATIONS) return meter_at(meter).end();
            pthread_setspecific(last_key, meter);
        });
        pthread_atfork(begin_part, end_part, end_part);
    }

private:
    static CountingMeter& meter_at(void* meter) { return *static_cast<CountingMeter*>(meter); }
    static void begin_part() {
        if (forking != nullptr) forking->begin();
    }
    static void begin_child() {
        if (forking == nullptr) return;
        forking->instructions_ = 0;
        forking->system_calls_ = 0;
        forking->begin();
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

// Multiples of the blocks of a magazine: then each pass exchanges as many with the depot as any
// other.
constexpr Sizes sizes{.rounds = 1,
                      .pairs = 64,
                      .passes = 1,
                      .blocks = 128,
                      .slots = 12,
                      .steps = 128,
                      .warm_blocks = 256,
                      .threads = 8,
                      .pairs_of_thread = 64};

}  // namespace

int main(int count, char** arguments) {
    const std::vector<Feature> features = all_features();
    const Feature* const feature = count != 4 ? nullptr : find_named(features, arguments[1]);
    if (feature == nullptr) return 2;
    // The trimmer's thread needs a program that has had another.
    std::thread([] {}).join();
    begin(*feature, std::string_view(arguments[2]) == "on");
    // The handlers of the library are set now.
    CountingMeter::set_last_handlers();
    for (const Work& work : all_works) {
        Unmeasured warm;
        for (int i = 0; i != std::atoi(arguments[3]); ++i) do_work(work, warm, sizes);
        CountingMeter meter;
        do_work(work, meter, sizes);
        std::printf("%lu %lu %s\n", meter.instructions(), meter.system_calls(), work.name);
    }
}

#else
int main() {}
#endif
