"""Threads that start after enable_numpy inherit it, in every way of starting."""

import concurrent.futures
import decimal
import multiprocessing.pool
import threading
import unittest

from support import EnabledCase, from_pool, np, tensorpool


def in_thread(function, make=threading.Thread):
    """Returns the result of the function, called in a new thread."""
    results = []
    thread = make(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


class ThreadsInherit(EnabledCase):
    def test_plain_threads(self):
        self.assertTrue(in_thread(from_pool))
        self.assertTrue(in_thread(lambda: in_thread(from_pool)))
        thread = threading.Thread(target=from_pool, daemon=True)
        thread.start()
        thread.join()
        self.assertNotIn("run", vars(thread))

    def test_subclasses_that_override_run(self):
        class Mine(threading.Thread):
            def run(self):
                self.result = from_pool()

        class Deeper(Mine):
            def run(self):
                super().run()

        for kind in (Mine, Deeper):
            thread = kind()
            thread.start()
            thread.join()
            self.assertTrue(thread.result)

    def test_subclasses_that_override_start(self):
        class Mine(threading.Thread):
            def start(self):
                self.started = True
                super().start()

        self.assertTrue(in_thread(from_pool, Mine))

    def test_instances_with_their_own_run(self):
        results = []
        thread = threading.Thread()
        given = thread.run = lambda: results.append(from_pool())
        thread.start()
        thread.join()
        self.assertEqual(results, [True])
        self.assertIs(thread.run, given)

    def test_timers(self):
        results = []
        timer = threading.Timer(0, lambda: results.append(from_pool()))
        timer.start()
        timer.join()
        self.assertEqual(results, [True])

    def test_executors(self):
        with concurrent.futures.ThreadPoolExecutor(3) as executor:
            self.assertTrue(executor.submit(from_pool).result())
            self.assertTrue(all(executor.map(lambda _: from_pool(), range(20))))

    def test_thread_pools(self):
        with multiprocessing.pool.ThreadPool(3) as pool:
            self.assertTrue(all(pool.map(lambda _: from_pool(), range(20))))
            self.assertTrue(pool.apply_async(from_pool).get())

    def test_arrays_of_a_thread_outlive_it(self):
        arrays = [in_thread(lambda: np.arange(100_000)) for _ in range(5)]
        for array in arrays:
            self.assertTrue(from_pool(array))
            self.assertEqual(array[-1], 99_999)

    def test_concurrent_threads_free_all_arrays(self):
        def work():
            arrays = [np.full(1 + i * 911 % 20_000, i) for i in range(500)]
            return all((array == i).all() for i, array in enumerate(arrays))

        with concurrent.futures.ThreadPoolExecutor(4) as executor:
            self.assertEqual([f.result() for f in [executor.submit(work) for _ in range(8)]], [True] * 8)


class ThreadsInheritOnlyTheSetting(EnabledCase):
    def test_not_if_it_is_not_enabled(self):
        tensorpool.disable_numpy()
        self.assertFalse(in_thread(from_pool))
        tensorpool.enable_numpy()

    def test_not_other_context_variables(self):
        with decimal.localcontext() as context:
            context.prec = 5
            self.assertEqual(in_thread(lambda: decimal.getcontext().prec), 28)

    def test_a_thread_may_disable_for_itself(self):
        def disable():
            tensorpool.disable_numpy()
            return from_pool()

        self.assertFalse(in_thread(disable))
        self.assertTrue(from_pool())

    def test_enabling_in_a_thread_applies_to_that_thread(self):
        tensorpool.disable_numpy()

        def enable():
            tensorpool.enable_numpy()
            return from_pool()

        self.assertTrue(in_thread(enable))
        self.assertFalse(from_pool())
        tensorpool.enable_numpy()

    def test_running_threads_must_enable(self):
        tensorpool.disable_numpy()
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            self.assertFalse(executor.submit(from_pool).result())
            tensorpool.enable_numpy()
            self.assertFalse(executor.submit(from_pool).result())
            executor.submit(tensorpool.enable_numpy).result()
            self.assertTrue(executor.submit(from_pool).result())


class StartIsUnchanged(EnabledCase):
    def test_twice_is_an_error(self):
        go = threading.Event()
        thread = threading.Thread(target=go.wait)
        thread.start()
        with self.assertRaisesRegex(RuntimeError, "threads can only be started once"):
            thread.start()
        self.assertNotIn("run", vars(thread))
        go.set()
        thread.join()

    def test_without_init_is_an_error(self):
        class Mine(threading.Thread):
            def __init__(self):
                pass

        thread = Mine()
        with self.assertRaisesRegex(RuntimeError, "not called"):
            thread.start()
        self.assertNotIn("run", vars(thread))

    def test_an_error_in_a_thread_reaches_the_hook(self):
        errors = []
        self.addCleanup(setattr, threading, "excepthook", threading.excepthook)
        threading.excepthook = lambda arguments: errors.append(arguments.exc_type)
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        self.assertEqual(errors, [ZeroDivisionError])

    def test_is_wrapped_once_under_its_own_name(self):
        start = threading.Thread.start
        tensorpool.disable_numpy()
        tensorpool.enable_numpy()
        self.assertIs(threading.Thread.start, start)
        self.assertEqual(start.__name__, "start")


if __name__ == "__main__":
    unittest.main()
