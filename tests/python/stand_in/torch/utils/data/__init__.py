"""A loader with one worker by fork, with the members that the real one has."""
import multiprocessing
import types

_worker = None


def get_worker_info():
    return _worker


class _MapDatasetFetcher:
    def __init__(self, dataset):
        self.dataset = dataset

    def fetch(self, index):
        return [self.dataset[i] for i in index]


def _worker_loop(dataset, indexes, results):
    global _worker
    _worker = types.SimpleNamespace(id=0, num_workers=1)
    fetcher = _MapDatasetFetcher(dataset)
    while (task := indexes.get()) is not None:
        results.put((task[0], fetcher.fetch(task[1])))


class _BaseDataLoaderIter:
    def __next__(self):
        data = self._next_data()
        self._num_yielded += 1
        return data


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader):
        self._fetcher, self._batches, self._num_yielded = _MapDatasetFetcher(loader.dataset), iter(loader.batches()), 0

    def _next_data(self):
        return self._fetcher.fetch(next(self._batches))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader):
        fork = multiprocessing.get_context("fork")
        self._num_yielded = self._send_idx = self._rcvd_idx = 0
        self._task_info, self._batches = {}, iter(loader.batches())
        self._indexes, self._results = fork.SimpleQueue(), fork.SimpleQueue()
        self._workers = [fork.Process(target=_worker_loop, args=(loader.dataset, self._indexes, self._results))]
        self._workers[0].start()
        self._try_put_index()
        self._try_put_index()

    def _try_put_index(self):
        index = next(self._batches, None)
        if index is None:
            return
        self._indexes.put((self._send_idx, index))
        self._task_info[self._send_idx] = (0,)
        self._send_idx += 1

    def _next_data(self):
        if self._rcvd_idx == self._send_idx:
            self._indexes.put(None)
            self._workers[0].join()
            raise StopIteration
        data = self._results.get()[1]
        self._rcvd_idx += 1
        self._try_put_index()
        return data


class DataLoader:
    def __init__(self, dataset, batch_size=1, num_workers=0):
        self.dataset, self.batch_size, self.num_workers = dataset, batch_size, num_workers

    def batches(self):
        return [range(i, i + self.batch_size) for i in range(0, len(self.dataset), self.batch_size)]

    def __iter__(self):
        it = _MultiProcessingDataLoaderIter(self) if self.num_workers else _SingleProcessDataLoaderIter(self)
        while True:
            try:
                yield next(it)
            except StopIteration:
                return


_utils = types.SimpleNamespace(fetch=types.SimpleNamespace(_MapDatasetFetcher=_MapDatasetFetcher))
dataloader = types.SimpleNamespace(_BaseDataLoaderIter=_BaseDataLoaderIter, _MultiProcessingDataLoaderIter=_MultiProcessingDataLoaderIter)
