"""tensorpool.scope: what it counts, when, and where it is refused."""

import asyncio
import concurrent.futures
import threading
import unittest

from support import EnabledCase, np, tensorpool

MIB = 1 << 20


def of_name(name):
    scopes = tensorpool.statistics()["scopes"]
    return next(scope for scope in scopes if scope["name"] == name)


def take(size):
    return np.empty(size, np.uint8)


class Figures(EnabledCase):
    def test_tell_what_was_done_inside(self):
        before = take(2 * MIB)
        with tensorpool.scope("inside") as inside:
            kept = take(MIB)
            take(3 * MIB)
            del before
        take(5 * MIB)
        figures = inside.figures
        self.assertEqual(figures.allocations, 2)
        self.assertEqual(figures.deallocations, 2)
        self.assertEqual(figures.requested_bytes, 4 * MIB)
        self.assertEqual(figures.allocated_bytes, 4 * MIB)
        self.assertEqual(figures.deallocated_bytes, 5 * MIB)
        self.assertEqual(figures.growth_bytes, -MIB)
        self.assertEqual(figures.peak_bytes, 4 * MIB)
        del kept
        self.assertEqual(inside.figures, figures)

    def test_stand_in_the_statistics_by_name(self):
        for _ in range(3):
            with tensorpool.scope("by name"):
                take(MIB)
        figures = of_name("by name")
        self.assertEqual(figures["calls"], 3)
        self.assertEqual(figures["open"], 0)
        self.assertEqual(figures["allocations"], 3)
        self.assertEqual(figures["peak_bytes"], MIB)

    def test_nest(self):
        with tensorpool.scope("outer") as outer:
            kept = take(MIB)
            with tensorpool.scope("inner") as inner:
                take(4 * MIB)
            del kept
        self.assertEqual(inner.figures.peak_bytes, 4 * MIB)
        self.assertEqual(inner.figures.allocations, 1)
        self.assertEqual(outer.figures.peak_bytes, 5 * MIB)
        self.assertEqual(outer.figures.allocations, 2)

    def test_so_far_while_it_is_open(self):
        with tensorpool.scope("so far") as so_far:
            self.assertEqual(so_far.figures, tensorpool.ScopeFigures())
            take(MIB)
            self.assertEqual(so_far.figures.peak_bytes, MIB)
            self.assertEqual(of_name("so far")["open"], 1)

    def test_are_those_of_the_latest_time(self):
        again = tensorpool.scope("again")
        self.assertEqual(again.figures, tensorpool.ScopeFigures())
        for size in (MIB, 2 * MIB):
            with again:
                take(size)
            self.assertEqual(again.figures.peak_bytes, size)

    def test_are_those_of_one_thread(self):
        with tensorpool.scope("one thread") as here:
            with concurrent.futures.ThreadPoolExecutor(1) as executor:

                def there():
                    with tensorpool.scope("one thread") as scope:
                        take(2 * MIB)
                    return scope.figures

                figures = executor.submit(there).result()
            take(MIB)
        self.assertEqual(figures.peak_bytes, 2 * MIB)
        self.assertEqual(here.figures.peak_bytes, MIB)

    def test_are_there_after_an_error(self):
        with self.assertRaises(ZeroDivisionError):
            with tensorpool.scope("error") as scope:
                take(MIB)
                1 / 0
        self.assertEqual(scope.figures.allocations, 1)
        self.assertEqual(of_name("error")["open"], 0)

    def test_long_names_and_those_beyond_ascii_are_taken(self):
        for name in ("", "größe", "x" * 200):
            with tensorpool.scope(name) as scope:
                take(MIB)
            self.assertEqual(scope.figures.allocations, 1)
            self.assertEqual(scope.name, name)


class Decorators(EnabledCase):
    def test_count_each_call(self):
        @tensorpool.scope("decorated")
        def work(depth, *, size):
            "What it does."
            array = take(size)
            return array.size if depth == 0 else work(depth - 1, size=size)

        self.assertEqual(work(3, size=MIB), MIB)
        self.assertEqual(work.__doc__, "What it does.")
        figures = of_name("decorated")
        self.assertEqual(figures["calls"], 4)
        self.assertEqual(figures["peak_bytes"], 4 * MIB)
        self.assertEqual(figures["out_of_order"], 0)

    def test_are_refused_where_the_body_runs_later(self):
        async def coroutine():
            pass

        def generator():
            yield

        async def both():
            yield

        for function in (coroutine, generator, both):
            with self.assertRaisesRegex(TypeError, "tensorpool: scope 'later': .* runs after its call"):
                tensorpool.scope("later")(function)


class Misuse(EnabledCase):
    def test_ending_on_another_thread_is_an_error(self):
        scope = tensorpool.scope("wandering")
        scope.__enter__()
        take(MIB)
        errors = []

        def end():
            try:
                scope.__exit__(None, None, None)
            except RuntimeError as error:
                errors.append(str(error))

        thread = threading.Thread(target=end, name="elsewhere")
        thread.start()
        thread.join()
        self.assertEqual(len(errors), 1)
        self.assertRegex(errors[0], "^tensorpool: scope 'wandering' began on thread 'MainThread' ")
        self.assertIn("ends on 'elsewhere', expected the same", errors[0])
        self.assertEqual(scope.figures.allocations, 1)
        self.assertEqual(of_name("wandering")["open"], 0)
        self.assertEqual(of_name("wandering")["out_of_order"], 1)

    def test_an_error_on_its_way_out_is_not_hidden(self):
        scope = tensorpool.scope("wandering too").__enter__()
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            end = executor.submit(scope.__exit__, ValueError, ValueError("mine"), None)
            self.assertFalse(end.result())

    def test_beginning_twice_is_an_error(self):
        with tensorpool.scope("twice") as scope:
            with self.assertRaisesRegex(RuntimeError, "tensorpool: scope 'twice' has begun"):
                with scope:
                    pass
            take(MIB)
        self.assertEqual(scope.figures.allocations, 1)

    def test_ending_without_beginning_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "tensorpool: scope 'never' ends"):
            tensorpool.scope("never").__exit__(None, None, None)

    def test_a_name_that_is_no_text_is_an_error(self):
        with self.assertRaisesRegex(TypeError, "tensorpool: scope: name is 5, expected a str"):
            tensorpool.scope(5)


class Tasks(EnabledCase):
    def test_that_take_turns_count_up_to_their_own_ends(self):
        async def work(name, size, turns):
            with tensorpool.scope(name) as scope:
                for _ in range(turns):
                    take(size)
                    await asyncio.sleep(0)
            return scope.figures

        async def main():
            return await asyncio.gather(work("first", MIB, 2), work("second", 2 * MIB, 4))

        first, second = asyncio.run(main())
        # The other's are counted too, as both run on this thread.
        self.assertGreaterEqual(first.allocations, 2 + 1)
        self.assertGreaterEqual(second.allocations, 4 + 1)
        self.assertEqual(of_name("first")["open"], 0)
        self.assertEqual(of_name("second")["open"], 0)
        self.assertEqual(of_name("first")["out_of_order"], 1)


if __name__ == "__main__":
    unittest.main()
