// The settings for a command that works on the service's files, and what it must do before it makes any.

import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/settings.ts';
import type { Terminal } from './terminal.ts';

/** What is doubtful about the settings goes to standard error. Throws ConfigError. */
export function operatorSettings(terminal: Terminal): Config {
  terminal.restrictNewFiles();
  const { config, warnings } = loadConfig(terminal.environment, terminal.readFile);
  for (const warning of warnings) terminal.stderr.write(`pasted: ${warning}\n`);
  return config;
}
