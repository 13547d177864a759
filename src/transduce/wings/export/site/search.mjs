/** Beam search with the length penalty of Wu et al. (2016), as in transduce's decoding/beam.py, for one sentence. */

import { BOS, EOS, PAD, UNK } from "./tokenizer.mjs";

export const lengthPenalty = (length, alpha) => ((5 + length) / 6) ** alpha;

/**
 * The best translation {tokens, score, rows} of a sentence; `rows` is what the steps returned beside the
 * log-probabilities. `stepper.step(tokens)` takes the last token of each hypothesis and returns {logProbs, rows}:
 * logProbs (w * v) and an array of w values. `stepper.reorder(parents)` selects hypotheses. `limit` is the maximum
 * number of tokens, EOS not counted. With `accepts`, the best of the `beamSize` best translations that it accepts is
 * returned, or else the best one.
 */
export async function search(stepper, limit, { beamSize, lengthPenalty: alpha, noRepeat = 0, nBest = 1 }) {
  const kept = Math.min(nBest, beamSize);
  let open = [{ logProb: 0, tokens: [BOS], rows: [] }];
  let complete = []; // best first
  for (let length = 1; length <= limit + 1; length++) {
    const { logProbs, rows } = await stepper.step(open.map(({ tokens }) => tokens.at(-1)));
    const size = logProbs.length / open.length;
    open.forEach(({ tokens }, row) => forbid(logProbs.subarray(row * size, (row + 1) * size), tokens, limit < length, noRepeat));
    const candidates = best(logProbs, open, size, 2 * beamSize);
    const extended = ({ total, index }) => {
      const parent = Math.floor(index / size);
      const before = open[parent];
      return {
        logProb: total, parent, tokens: [...before.tokens, index % size],
        rows: rows ? [...before.rows, rows[parent]] : before.rows,
      };
    };
    const divisor = lengthPenalty(length, alpha);
    const isEnd = ({ index }) => index % size === EOS;
    for (const candidate of candidates.slice(0, beamSize).filter(isEnd)) {
      complete.push({ ...extended(candidate), score: Math.fround(candidate.total / divisor) });
    }
    // The sort is stable: at equal scores the shorter hypothesis stays ahead.
    complete = complete.sort((a, b) => b.score - a.score).slice(0, kept);
    open = candidates.filter((each) => !isEnd(each)).slice(0, beamSize).map(extended);
    const isFull = complete.length === kept;
    if (beamSize === 1 ? isFull : limit < length || !open.length) break;
    // The final score of an open hypothesis is at most its log-probability divided by the largest penalty.
    if (isFull && complete.at(-1).score >= open[0].logProb / lengthPenalty(limit + 1, alpha)) break;
    stepper.reorder(open.map(({ parent }) => parent));
  }
  return complete.map(({ score, tokens, rows }) => ({ score, tokens: tokens.slice(1, -1), rows: rows.slice(0, tokens.length - 2) }));
}

function forbid(logProbs, tokens, isFull, noRepeat) {
  if (noRepeat) {
    const last = String(tokens.slice(tokens.length - noRepeat + 1));
    for (let end = noRepeat - 1; end < tokens.length; end++) {
      if (String(tokens.slice(end - noRepeat + 1, end)) === last) logProbs[tokens[end]] = -Infinity;
    }
  }
  logProbs[PAD] = logProbs[BOS] = logProbs[UNK] = -Infinity;
  if (isFull) logProbs.fill(-Infinity, EOS + 1);
}

/** The `count` best extensions {total, index} of the open hypotheses, best first, without impossible ones. */
function best(logProbs, open, size, count) {
  const found = [];
  let least = -Infinity;
  open.forEach(({ logProb }, row) => {
    for (let index = row * size; index < (row + 1) * size; index++) {
      const total = Math.fround(logProb + logProbs[index]);
      if (!(total > least)) continue;
      let place = found.length;
      while (place > 0 && found[place - 1].total < total) place--;
      found.splice(place, 0, { total, index });
      if (found.length > count) found.pop();
      if (found.length === count) least = found.at(-1).total;
    }
  });
  return found;
}

/** Runs encoder.onnx once and decoder.onnx at each step, with the keys and values of all steps so far. */
export class OnnxStepper {
  /** `source` holds ids without EOS; with `aligns`, each step returns the attention to the source. */
  static async start({ Tensor, encoder, decoder, caches }, source, aligns) {
    const ids = BigInt64Array.from([...source, EOS], BigInt);
    const memory = await encoder.run({ source: new Tensor("int64", ids, [1, ids.length]) });
    const state = {};
    for (const [name, heads, width] of caches) state[name] = new Tensor("float32", new Float32Array(0), [1, heads, 0, width]);
    return Object.assign(new OnnxStepper(), { Tensor, decoder, memory, state, aligns, length: ids.length });
  }

  async step(tokens) {
    const names = Object.keys(this.state);
    const outputs = ["log_probs", ...(this.aligns ? ["attention"] : []), ...names.map((name) => `${name}_after`)];
    const ids = new this.Tensor("int64", BigInt64Array.from(tokens, BigInt), [tokens.length]);
    const found = await this.decoder.run({ tokens: ids, ...this.memory, ...this.state }, outputs);
    for (const name of names) this.state[name] = found[`${name}_after`];
    const attention = found.attention?.data;
    const rows = attention && tokens.map((_, row) => attention.slice(row * this.length, (row + 1) * this.length));
    return { logProbs: found.log_probs.data, rows };
  }

  reorder(parents) {
    for (const [name, { data, dims }] of Object.entries(this.state)) {
      if (parents.length === dims[0] && parents.every((parent, row) => parent === row)) continue;
      const size = data.length / dims[0];
      const chosen = new Float32Array(parents.length * size);
      parents.forEach((parent, row) => chosen.set(data.subarray(parent * size, (parent + 1) * size), row * size));
      this.state[name] = new this.Tensor("float32", chosen, [parents.length, ...dims.slice(1)]);
    }
  }
}
