#include "models/instructions.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include "models/planted_faults.hpp"
#include "models/pool_model.hpp"

namespace tensorpool::testing {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
// Limits the memory, so that a program of any length fits a small machine.
constexpr std::size_t max_in_use = 96 * mib;

/// Reads a program. Zeros follow its end.
class Reader {
public:
    explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    bool at_end() const { return bytes_.empty(); }
    std::size_t byte() {
        if (bytes_.empty()) return 0;
        const std::size_t byte = bytes_.front();
        bytes_ = bytes_.subspan(1);
        return byte;
    }
    /// Returns a size below 2 to the power of `doublings`, with each doubling equally likely, or 0.
    std::size_t size(unsigned doublings) {
        const std::size_t doubling = byte() % doublings;
        const std::size_t fraction = byte() << 8 | byte();
        return (std::size_t{1} << doubling) + ((fraction << doubling) >> 16) -
               (fraction == 0 ? 1 : 0);
    }
    template <class T, std::size_t count>
    T one_of(const T (&choices)[count]) {
        return choices[byte() % count];
    }

private:
    std::span<const std::uint8_t> bytes_;
};

PoolOptions options_from(Reader& reader) {
    PoolOptions options;
    options.name = "model";
    options.checks = reader.one_of(
        {Checks::off, Checks::off, Checks::basic, Checks::full, Checks::sampled, Checks::hardened});
    options.guard_share = 1;
    options.quarantine_bytes = reader.one_of<std::size_t>({16 * mib, 16 * mib, 0, 64 * kib});
    options.max_capacity = reader.one_of<std::size_t>({0, 0, mib, 8 * mib + 4 * kib, 40 * mib});
    options.retain.bytes = reader.one_of<std::size_t>({SIZE_MAX, SIZE_MAX, 0, 64 * kib, 2 * mib});
    options.retain.milliseconds = reader.one_of<std::uint32_t>({10'000, 10'000, 0});
    options.growth.step = reader.one_of<std::size_t>({4 * mib, 4 * mib, 0, 64 * kib});
    options.growth.factor = reader.one_of({0.125, 0.0, 2.0});
    options.huge_pages = reader.one_of({HugePages::automatic, HugePages::never, HugePages::always});
    options.max_allocation = reader.one_of<std::size_t>({std::size_t{8} << 30, SIZE_MAX, 4 * mib});
    return options;
}

/// Executes one program.
class Machine {
public:
    Machine(MemoryPool& pool, Subject& subject, const PoolOptions& options, Reader& reader)
        : pool_(pool),
          options_(options),
          reader_(reader),
          model_(subject, options,
                 options.max_capacity == 0 ? Refusals::none : Refusals::may_happen) {}

    void run() {
        while (!reader_.at_end()) step();
        model_.check();
        model_.deallocate_all();
        model_.trim();
        model_.check_empty();
    }

private:
    void step() {
        using Instruction = void (Machine::*)();
        static constexpr Instruction instructions[] = {
            &Machine::allocate,       &Machine::allocate,        &Machine::allocate_aligned,
            &Machine::try_allocate,   &Machine::allocate_zeroed, &Machine::reallocate,
            &Machine::deallocate,     &Machine::deallocate,      &Machine::deallocate,
            &Machine::allocate_many,  &Machine::deallocate_many, &Machine::work_on_another_thread,
            &Machine::trim,           &Machine::reserve,         &Machine::refuse_nonsense,
            &Machine::check_addresses};
        (this->*reader_.one_of(instructions))();
    }

    // Returns a size that fits into the memory that a program may use.
    std::size_t size() {
        const std::size_t bytes = reader_.size(reader_.byte() % 32 == 0 ? 25 : 18);
        return model_.bytes_in_use() + bytes > max_in_use ? bytes % 64 : bytes;
    }

    void allocate() { model_.allocate(size()); }
    void try_allocate() { model_.try_allocate(size(), std::size_t{1} << reader_.byte() % 14); }
    void allocate_aligned() {
        const std::size_t bytes = size();
        model_.allocate(bytes, std::size_t{1} << reader_.byte() % 25);
    }
    void allocate_zeroed() {
        const std::size_t count = 1 + reader_.byte() % 16;
        model_.allocate_zeroed(count, size() / count);
    }
    void reallocate() {
        const std::size_t k = reader_.byte();
        model_.reallocate(k, size());
    }
    void deallocate() {
        using How = PoolModel::How;
        const auto how = reader_.one_of(
            {How::unsized, How::with_size, How::with_usable_size, How::with_alignment});
        model_.deallocate(reader_.byte(), how);
    }
    void allocate_many() {
        const std::size_t bytes = size() % (16 * kib);
        // Rarely so many that they fill magazines: each is checked.
        const std::size_t count = reader_.byte();
        for (std::size_t left = count % 8 == 0 ? count : count % 16; left != 0; --left) {
            model_.allocate(bytes);
        }
    }
    void deallocate_many() {
        for (std::size_t left = reader_.byte() % 32; left != 0; --left) deallocate();
    }
    void trim() { model_.trim(); }
    void reserve() {
        const std::size_t bytes = reader_.size(26);
        model_.reserve(reader_.byte() % 16 == 0 ? bytes << 44 : bytes);
    }
    void check_addresses() {
        model_.check_address(&pool_);
        model_.check_address(nullptr);
        const auto somewhere = reinterpret_cast<std::uintptr_t>(last_) + reader_.size(25);
        model_.check_address(reinterpret_cast<const void*>(somewhere));
    }
    void work_on_another_thread();
    void refuse_nonsense();

    MemoryPool& pool_;
    const PoolOptions& options_;
    Reader& reader_;
    PoolModel model_;
    const void* last_ = this;
};

// A thread that starts, uses the pool and ends. Its cache is left to the next thread.
void Machine::work_on_another_thread() {
    const std::size_t bytes = 1 + reader_.size(14) % (8 * kib);
    const std::size_t most = reader_.byte();
    if (options_.max_capacity != 0) return;
    std::uint64_t made = 0;
    std::thread([&] {
        std::array<void*, 256> blocks{};
        for (; made < most; ++made) blocks[made] = pool_.allocate(bytes);
        for (std::uint64_t i = 0; i < made; ++i) pool_.deallocate(blocks[i], bytes);
        last_ = blocks[0];
    }).join();
    model_.count_others(made, bytes);
}

void Machine::refuse_nonsense() {
    pool_.deallocate(nullptr);
    pool_.deallocate(nullptr, reader_.byte());
    model_.allocate(0);
    if (pool_.try_allocate(1, 3 * reader_.byte()) != nullptr)
        mismatch("an invalid alignment was accepted");
    try {
        (void)pool_.allocate(1, 24);
        mismatch("an alignment of 24 was accepted");
    } catch (const std::invalid_argument&) {
    }
    const std::size_t most = std::min(options_.max_allocation, std::size_t{1} << 40);
    const std::size_t more = reader_.size(60);
    if (model_.allocate(most + 1 + more)) mismatch("a request above all limits succeeded");
    if (model_.allocate(1, std::size_t{1} << (41 + more % 23))) {
        mismatch("an impossible alignment succeeded");
    }
    if (model_.allocate_zeroed(SIZE_MAX / 2, 3)) mismatch("a product that overflows succeeded");
}

}  // namespace

void run_instructions(std::span<const std::uint8_t> bytes, std::string_view planted_fault) {
    Reader reader(bytes);
    const PoolOptions options = options_from(reader);
    auto pool = std::make_unique<MemoryPool>(options);
    const std::unique_ptr<Subject> subject = subject_with_fault(planted_fault, *pool);
    try {
        Machine(*pool, *subject, options, reader).run();
    } catch (const Mismatch&) {
        // Never destroyed: the destructor would find blocks in use and end the process first.
        static auto* const broken_pools = new std::vector<std::unique_ptr<MemoryPool>>;
        broken_pools->push_back(std::move(pool));
        throw;
    }
}

std::vector<std::uint8_t> random_instructions(std::uint64_t seed, std::size_t bytes) {
    std::mt19937_64 random(seed);
    std::vector<std::uint8_t> program(bytes);
    for (std::uint8_t& byte : program) byte = static_cast<std::uint8_t>(random());
    return program;
}

}  // namespace tensorpool::testing
