// The release number, equal to package.json's (a conformance test holds it), so that dist/ runs with no other file
// beside it.

export const VERSION = '1.5.0';
