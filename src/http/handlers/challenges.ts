// GET /challenge: proof-of-work for a paste.

import type { Challenges } from '../../service/challenges.ts';
import type { Handlers } from '../handler.ts';
import { challengeLine, presentPasteChallenge } from '../present.ts';
import { jsonReply, textReply } from '../reply.ts';

export function createChallengeHandlers(challenges: Challenges): Pick<Handlers, 'getChallenge'> {
  return {
    getChallenge: (request) => {
      const challenge = challenges.issue('paste');
      if (request.prefersText) return textReply(200, challengeLine(challenge), { Vary: 'Accept' });
      return jsonReply(200, presentPasteChallenge(challenge, challenges.pasteBaseBits), { Vary: 'Accept' });
    },
  };
}
