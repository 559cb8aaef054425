// The table of commands, each with what src/operator/help.txt says of it: for completions and the manual page.

import type { Command } from '../../src/operator/commands.ts';

export type ExplainedCommand = ReturnType<typeof explain>;
export type ExplainedOption = ExplainedCommand['options'][number];

/** `help` is the text of help.txt; its sections must have the form that this code parses. */
export function explainCommands(commands: readonly Command[], help: string): readonly ExplainedCommand[] {
  const sections = help.trimEnd().split(/\n\n(?=pasted )/);
  return commands.map((command) => {
    const section = sections.find((text) => text.startsWith(`pasted ${command.name} - `));
    if (section === undefined) throw new Error(`help.txt says nothing of ${command.name}`);
    return explain(command, section);
  });
}

function explain(command: Command, section: string) {
  const [title = '', , description = '', options = '', examples = ''] = section.split('\n\n');
  const meanings = new Map(Array.from(options.matchAll(/^ {2}(--\S+).*? {2,}(.+)$/gm), ([, name, text]) => [name, text]));
  return {
    ...command,
    summary: title.slice(`pasted ${command.name} - `.length),
    description,
    options: command.options.map((option) => ({ ...option, meaning: meanings.get(option.name) ?? '' })),
    examples: examples.split('\n').slice(1).map((line) => line.trim()),
  };
}
