// The one rule for common names of certificates, whoever asks for them. What stands in for none is decided elsewhere.

/** RFC 5280 appendix A.1: ub-common-name. */
const MAX_CODE_POINTS = 64;

// C0, DEL and C1 controls; the line and paragraph separators; and every explicit directional formatting character
// (Unicode Standard Annex 9, section 2: embeddings, overrides, isolates), with which one name could be made to look
// like another.
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;

/**
 * The name trimmed and in Unicode normalization form C, so that names which look the same are the same bytes.
 * Undefined when that is not 1 to 64 code points, is not well-formed Unicode, or holds a forbidden character.
 */
export function normaliseCommonName(name: string): string | undefined {
  if (!name.isWellFormed()) return undefined;
  const normalised = name.trim().normalize('NFC');
  const codePoints = [...normalised].length;
  if (codePoints < 1 || codePoints > MAX_CODE_POINTS || FORBIDDEN.test(normalised)) return undefined;
  return normalised;
}
