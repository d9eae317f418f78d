"""Writes a language model small enough for any machine, and serves it with llama.cpp's own server.

A llama of one layer that knows the 256 bytes and the printable characters. Its attention is noise
too weak to matter; its embeddings make it say the alphabet once, whatever it is asked. The server
reads it, counts its tokens, streams them and keeps it to a schema as it does any other model.
Run by the judges' interpreter: `python tiny_gguf.py FOLDER WINDOW`; it says where it listens and
goes on until it is ended.
"""

from __future__ import annotations

import signal
import string
import sys
from pathlib import Path

import gguf
import numpy as np
import xllamacpp

WIDTH = 32  # a place for each letter it says, one for all other words, one for taste
HEADS = 2
INNER = 64
TRAINED = 2048  # tokens
MARKS = ("<unk>", "<s>", "</s>")
SPACE = "\u2581"  # as this kind of vocabulary writes it
LETTERS = tuple(map(chr, range(33, 127)))
BYTES = tuple(f"<0x{number:02X}>" for number in range(256))
WORDS = (*MARKS, *BYTES, SPACE, *LETTERS)
SAID = string.ascii_lowercase
END = MARKS[2]
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def written(path: Path) -> Path:
    """The model as a file."""
    writer = gguf.GGUFWriter(path, "llama")
    _shape(writer)
    _vocabulary(writer)
    _weights(writer, np.random.default_rng(7))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _shape(writer: gguf.GGUFWriter) -> None:
    writer.add_name("tiny")
    writer.add_context_length(TRAINED)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def _vocabulary(writer: gguf.GGUFWriter) -> None:
    mark, byte, plain = gguf.TokenType.CONTROL, gguf.TokenType.BYTE, gguf.TokenType.NORMAL
    kinds = [gguf.TokenType.UNKNOWN, mark, mark, *[byte] * 256, *[plain] * (1 + len(LETTERS))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([word.encode() for word in WORDS])
    writer.add_token_scores([-float(number) for number in range(len(WORDS))])
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)


def _weights(writer: gguf.GGUFWriter, chance: np.random.Generator) -> None:
    words, following = _chain()
    writer.add_tensor("token_embd.weight", words)
    writer.add_tensor("output.weight", following)
    shapes = {
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (WIDTH, WIDTH),
        "attn_v": (WIDTH, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "ffn_gate": (INNER, WIDTH),
        "ffn_up": (INNER, WIDTH),
        "ffn_down": (WIDTH, INNER),
    }
    for name, shape in shapes.items():
        noise = chance.normal(0, 0.001, shape).astype(np.float32)
        writer.add_tensor(f"blk.0.{name}.weight", noise)
    for name in ("output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"):
        writer.add_tensor(name, np.ones(WIDTH, dtype=np.float32))


def _chain() -> tuple[np.ndarray, np.ndarray]:
    """What each word is, and what makes each word follow: a letter, the next one; `z`, the end."""
    other, taste = WIDTH - 2, WIDTH - 1
    words = np.zeros((len(WORDS), WIDTH), dtype=np.float32)
    following = np.zeros_like(words)
    place = {letter: number for number, letter in enumerate(SAID)}
    for number, word in enumerate(WORDS):
        words[number, place.get(word, other)] = 4
        words[number, taste] = 1
    for before, after in zip(SAID, (*SAID[1:], END), strict=True):
        following[WORDS.index(after), place[before]] = 4
    following[WORDS.index(SAID[0]), other] = 4
    following[: -len(LETTERS), taste] = -1  # bytes and blanks only where nothing else will do
    return words, following


def serve(model: Path, window: int) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_ctx = window
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.sampling.temp = 0.0
    params.cache_prompt = False
    params.warmup = False
    params.port = 0
    server = xllamacpp.Server(params)
    sys.stdout.write(f"listening at {server.listening_address}\n")
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    folder, window = sys.argv[1:]
    serve(written(Path(folder) / "tiny.gguf"), int(window))
