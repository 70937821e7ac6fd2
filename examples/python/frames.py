# SPDX-License-Identifier: Apache-2.0
"""Frames of videos, each with the ones before it.

    python examples/python/frames.py walk.mp4 run.mp4 --out ds/frames --side 64
    python examples/python/frames.py --out ds/frames --window 4

The first command decodes the videos with PyAV and packs their frames in order, with the number of
the video as the episode.  The second one loads windows: a frame and the three before it, never
across two videos.  Both may be one command.
"""

import argparse

import libshard


def evenly(path, times):
    """A window counts frames, so a time must mean the same everywhere in a video."""
    gaps = [b - a for a, b in zip(times, times[1:])]
    usual = sorted(gaps)[len(gaps) // 2] if gaps else 0
    for i, gap in enumerate(gaps):
        if not 0.5 * usual < gap < 1.5 * usual:
            raise SystemExit(
                f"{path}: frames {i} and {i + 1} are {gap:.3f} s apart, and most others {usual:.3f} s, so windows of frames "
                "would differ in time; encode the video with a constant frame rate"
            )


def frames(paths, side):
    import av

    for episode, path in enumerate(paths):
        times = []
        with av.open(path) as video:
            for frame in video.decode(video=0):
                times.append(float(frame.time))
                pixels = frame.reformat(width=side, height=side, format="rgb24").to_ndarray()
                yield {"frame": pixels, "time": times[-1], "episode": episode, "key": f"{path}/{len(times) - 1:06}"}
        if not times:
            raise SystemExit(f"{path}: has no frames")
        evenly(path, times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("videos", nargs="*")
    parser.add_argument("--out", required=True)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--window", type=int, default=4, help="frames of a window")
    options = parser.parse_args()
    if options.videos:
        schema = {"frame": f"image[{options.side},{options.side},3]", "time": "float64", "episode": "int64"}
        libshard.pack(frames(options.videos, options.side), schema, options.out, key="key")
    window = (1 - options.window, 0)
    with libshard.Loader(options.out, 8, window=window, window_edge="drop", seed=1) as loader:
        print(f"{len(loader.dataset)} frames, {len(loader.selection)} windows")
        for batch in loader:
            clips = batch["frame"]  # [8, window, side, side, 3], the oldest frame first
            seconds = batch["time"].numpy()
            print(f"step {batch.step}: {clips.shape}, {(seconds[:, -1] - seconds[:, 0]).mean():.3f} s")


if __name__ == "__main__":
    main()
