#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "blocks/magazine.hpp"

namespace tensorpool::testing {

/// The faults in an exchange of magazines between threads. All counts are zero if each magazine had
/// one holder at a time and none was lost.
struct OwnershipFindings {
    std::size_t held_by_two = 0;  // taken while held, or found with another holder at the end
    std::size_t torn = 0;         // its content differs from what its last holder wrote
    std::size_t strangers = 0;    // taken, but never entered
    std::size_t lost = 0;         // entered, but missing at the end
    std::size_t there_twice = 0;  // found more than once at the end
    bool operator==(const OwnershipFindings&) const = default;
};

/// Threads take magazines from an exchange, hold a few, and give them back full or empty, at
/// random. Each magazine has an owner word, which a holder exchanges when it takes and when it
/// gives, so that two simultaneous holders are detected. Exchange has Depot's functions.
template <class Exchange>
class OwnershipModel {
public:
    /// The owner word is relaxed, so that only the exchange itself orders the writes of one holder
    /// before the reads of the next. A test of a faulty exchange may request a stronger order.
    OwnershipModel(Exchange& exchange, unsigned magazines,
                   std::memory_order order = std::memory_order_relaxed)
        : exchange_(exchange), order_(order), owners_(magazines) {
        for (unsigned i = 0; i < magazines; ++i) {
            blocks::Magazine& magazine = magazines_.emplace_back();
            magazine.count = i;
            set_seal(magazine, 0);
            exchange_.enter(magazine);
            exchange_.give_full(magazine);
        }
    }

    OwnershipFindings run(unsigned threads, unsigned steps) {
        std::vector<OwnershipFindings> found(threads);
        std::vector<std::thread> workers;
        for (unsigned i = 0; i < threads; ++i) {
            workers.emplace_back([this, steps, i, &found] { found[i] = work(i + 1, steps); });
        }
        for (std::thread& worker : workers) worker.join();
        OwnershipFindings all = take_stock();
        for (const OwnershipFindings& one : found) {
            all.held_by_two += one.held_by_two;
            all.torn += one.torn;
            all.strangers += one.strangers;
        }
        return all;
    }

private:
    static constexpr unsigned no_owner = 0;
    static constexpr std::size_t max_held = 4;

    // A magazine's number is written in it once and only read later, so that even a false holder
    // may read it.
    bool is_stranger(const blocks::Magazine& magazine) const {
        return magazine.count >= magazines_.size() || &magazines_[magazine.count] != &magazine;
    }
    static void set_seal(blocks::Magazine& magazine, std::size_t seal) {
        for (void*& block : magazine.blocks) block = reinterpret_cast<void*>(seal);
    }
    static bool has_one_seal(const blocks::Magazine& magazine) {
        for (void* const block : magazine.blocks) {
            if (block != magazine.blocks[0]) return false;
        }
        return true;
    }

    OwnershipFindings work(unsigned self, unsigned steps) {
        OwnershipFindings found;
        std::minstd_rand random(self);
        std::deque<blocks::Magazine*> held;
        for (unsigned step = 0; step < steps; ++step) {
            const auto chance = random() >> 8;
            if (blocks::Magazine* const magazine = take(chance % 2 == 0, self, found)) {
                set_seal(*magazine, std::size_t{self} << 32 | step);
                held.push_back(magazine);
            }
            if (held.size() < max_held && chance % 4 != 0) continue;
            if (!held.empty()) give(held, self, chance % 3 == 0, found);
        }
        while (!held.empty()) give(held, self, true, found);
        return found;
    }

    blocks::Magazine* take(bool full, unsigned self, OwnershipFindings& found) {
        blocks::Magazine* const magazine = full ? exchange_.take_full() : exchange_.take_empty();
        if (magazine == nullptr) return nullptr;
        if (is_stranger(*magazine)) {
            ++found.strangers;
            return nullptr;
        }
        if (owners_[magazine->count].exchange(self, order_) != no_owner) {
            // Held by another thread: it is neither touched nor given back.
            ++found.held_by_two;
            return nullptr;
        }
        if (!has_one_seal(*magazine)) ++found.torn;
        return magazine;
    }

    void give(std::deque<blocks::Magazine*>& held, unsigned self, bool full,
              OwnershipFindings& found) {
        blocks::Magazine& magazine = *held.front();
        held.pop_front();
        if (owners_[magazine.count].exchange(no_owner, order_) != self) ++found.held_by_two;
        if (full) {
            exchange_.give_full(magazine);
        } else {
            exchange_.give_empty(magazine);
        }
    }

    OwnershipFindings take_stock() {
        OwnershipFindings found;
        std::vector<unsigned> seen(magazines_.size());
        const auto count = [&](blocks::Magazine* magazine) {
            if (magazine == nullptr) return false;
            if (is_stranger(*magazine)) {
                ++found.strangers;
            } else {
                ++seen[magazine->count];
            }
            return true;
        };
        // A circular list has no end.
        std::size_t left = 2 * magazines_.size();
        while (left != 0 && count(exchange_.take_full())) --left;
        while (left != 0 && count(exchange_.take_empty())) --left;
        for (const unsigned times : seen) {
            found.lost += times == 0;
            found.there_twice += times > 1;
        }
        return found;
    }

    Exchange& exchange_;
    const std::memory_order order_;
    std::deque<blocks::Magazine> magazines_;
    std::deque<std::atomic<unsigned>> owners_;
};

}  // namespace tensorpool::testing
