"""Train a model on a Chinese novel, and show the names that are most similar to one of its names.

    python examples/chinese_novel.py NOVEL.txt 宝玉 --minutes 10
    python examples/chinese_novel.py

Without a novel, a short story is made up, in which 李云 and 王月 travel and 张三 and 赵四 cook.
"""

import argparse
import random
import tempfile
from pathlib import Path

import bilmo

TRAVELLERS, COOKS = ("李云", "王月", "陈山"), ("张三", "赵四", "孙五")
PLACES, DISHES = ("京城", "江南", "山中", "海边"), ("豆腐", "面条", "饺子", "鱼汤")


def story(lines: int = 1000) -> str:
    """A text in which travellers and cooks appear in different contexts."""
    draw = random.Random(0)
    found = []
    for _ in range(lines):
        traveller, other = draw.sample(TRAVELLERS, 2)
        cook = draw.choice(COOKS)
        place, dish = draw.choice(PLACES), draw.choice(DISHES)
        found.append(
            draw.choice(
                (
                    f"{traveller}骑马来到{place}。",
                    f"{traveller}和{other}一起去{place}。",
                    f"{traveller}离开{place}，{other}在路上等他。",
                    f"{cook}在厨房里做{dish}。",
                    f"{cook}说：“今天的{dish}很好吃。”",
                    f"大家都喜欢{cook}做的{dish}。",
                )
            )
        )
    return "\n".join(found)


def main() -> None:
    """Train, and show the most similar words."""
    options = argparse.ArgumentParser(description="Train a model on a Chinese novel.")
    options.add_argument("novel", nargs="?", type=Path, help="a text file; without it, a story is made up")
    options.add_argument("name", nargs="?", default="李云", help="a name in the text")
    options.add_argument("--minutes", type=float, default=10, help="minutes to train on the novel")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = given.novel or Path(folder, "story.txt")
        if given.novel is None:
            text.write_text(story(), encoding="utf-8")
        names = Path(folder, "names.txt")  # words that are never split
        names.write_text("\n".join({given.name, *TRAVELLERS, *COOKS}) + "\n", encoding="utf-8")
        if given.novel is None:
            elmo = bilmo.train(text, Path(folder, "model"), recipe="tiny", lang="zh", dictionary=str(names), epochs=8)
        else:
            elmo = bilmo.train(
                text, Path(folder, "model"), lang="zh", dictionary=str(names), minutes=given.minutes, progress=True
            )
        print(f"words most similar to {given.name}:")
        for word, cosine in elmo.most_similar(given.name, topn=9):
            print(f"  {word}\t{cosine:.3f}")


if __name__ == "__main__":
    main()
