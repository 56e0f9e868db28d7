#pragma once

/// @file
/// xtensor: from here on the elements of every xt::xarray and xt::xtensor, temporaries of
/// expressions included, come from the global pool, each array at a multiple of 64 bytes. Belongs
/// before every header of xtensor, and into every source of a program that uses xtensor, for it
/// changes their types: best by the compiler's option `-include tensorpool/xtensor.hpp`.
///
/// Arrays throw AllocationError where the pool does, and are then as before. Any thread. Shapes and
/// strides of more than four dimensions still come from `new`.
///
/// Not of this header, but in the way of a program in C++20: with gcc, xtensor 0.24 takes the wrong
/// type for `xt::eval`, and for temporaries of views, of an xt::xarray, unless it is compiled with
/// -fno-new-ttp-matching (its xexpression_traits.hpp looks for C++17 and no later).
///
/// Without this header a single type may use a pool too:
/// `xt::xarray<float, xt::layout_type::row_major, tensorpool::Allocator<float>>`.

#ifdef XTENSOR_CONFIG_HPP
#error "tensorpool: xtensor was included before <tensorpool/xtensor.hpp>, expected after it"
#endif
#ifdef XTENSOR_DEFAULT_ALLOCATOR
#error \
    "tensorpool: XTENSOR_DEFAULT_ALLOCATOR is set already, expected <tensorpool/xtensor.hpp> to set it"
#endif

#include <tensorpool/allocator.hpp>

#define XTENSOR_DEFAULT_ALLOCATOR(T) tensorpool::Allocator<T>

#include <xtensor/xtensor_config.hpp>
